//! A ledger on flash that blocks.

use embedded_storage::nor_flash::NorFlash;

use super::{
    Append, CopyBytes, Ledger, LedgerError, LedgerNonce, Limits, RECORD_BYTES, Search,
    check_geometry, place, record::Record, slot_bytes,
};
use crate::{
    crypto::Key, identity::Identity, participation::Participation, secrets::Secrets,
    wire::keys::ChainKey,
};

impl<F: NorFlash> Ledger<F> {
    /// Writes the first record: part of provisioning a device, once, with a nonce that was never
    /// used before and the key that its coordinator knows.
    ///
    /// # Errors
    /// [`LedgerError::NotBlank`] unless the flash is erased or an earlier creation was cut short;
    /// [`LedgerError::Geometry`], [`LedgerError::Flash`].
    pub fn create(flash: F, nonce: LedgerNonce, key: Key) -> Result<Self, LedgerError> {
        Self::check_geometry(&flash)?;
        let mut ledger = Self::unread(flash);
        match ledger.find() {
            Ok(false) => ledger.begin_life(nonce, key)?,
            Ok(true) | Err(LedgerError::Corrupt) => return Err(LedgerError::NotBlank),
            Err(error) => return Err(error),
        }
        Ok(ledger)
    }

    /// Reads the record that counts, after every start.
    ///
    /// # Errors
    /// [`LedgerError::Blank`], [`LedgerError::Corrupt`], [`LedgerError::Geometry`],
    /// [`LedgerError::Flash`]. Without its ledger a device must not take part.
    pub fn open(flash: F) -> Result<Self, LedgerError> {
        Self::open_or(flash, None)
    }

    /// [`Self::open`], or [`Self::create`] on blank flash with the key of the provisioning record
    /// and this nonce, which the hardware's random number generator has drawn at this start.
    /// Without such a generator, use [`Self::open`]: a nonce that comes twice would repeat the
    /// streams of a ledger that was erased.
    ///
    /// Flash that is erased as a whole counts from 0 again, with other streams; the coordinator
    /// refuses the device until it is provisioned again.
    ///
    /// # Errors
    /// Those of [`Self::open`]; [`LedgerError::Blank`] only without a key, which a provisioning
    /// record loses at the first start.
    pub fn open_or_create(
        flash: F,
        fresh: LedgerNonce,
        key: Option<Key>,
    ) -> Result<Self, LedgerError> {
        Self::open_or(flash, key.map(|key| (fresh, key)))
    }

    #[inline(never)]
    fn open_or(flash: F, fresh: Option<(LedgerNonce, Key)>) -> Result<Self, LedgerError> {
        Self::check_geometry(&flash)?;
        let mut ledger = Self::unread(flash);
        if !ledger.find()? {
            let (nonce, key) = fresh.ok_or(LedgerError::Blank)?;
            ledger.begin_life(nonce, key)?;
        }
        Ok(ledger)
    }

    /// Finds the record that counts; whether there is one. The flash stays as it is.
    #[inline(never)]
    pub(super) fn find(&mut self) -> Result<bool, LedgerError> {
        let (mut search, mut bytes) = (Search::START, CopyBytes::ZEROS);
        for copy in 0..Search::COPIES {
            self.read(copy, &mut bytes.0)?;
            self.look(&mut search, &bytes.0)?;
        }
        self.is_found(&search)
    }

    fn check_geometry(flash: &F) -> Result<(), LedgerError> {
        check_geometry(
            [F::READ_SIZE, F::WRITE_SIZE, F::ERASE_SIZE],
            flash.capacity(),
        )
    }

    /// Records that the device takes part in `round`, and gives what it takes part with: once.
    ///
    /// Its streams are those of `identity` with this ledger ([`Identity`]).
    ///
    /// # Errors
    /// Those of [`Self::check`], [`LedgerError::Element`], and [`LedgerError::Flash`]: the round
    /// must then not begin, and may count as used.
    pub fn begin<S: Secrets>(
        &mut self,
        round: u32,
        identity: &mut Identity<S>,
        limits: &Limits,
    ) -> Result<Participation, LedgerError> {
        // Before anything is asked of an element, whose fault costs no participation.
        self.check(round, limits)?;
        let participation = self.participation(round, identity)?;
        let step = self.step(&mut identity.root)?;
        self.record_step(round, limits, step.as_ref())?;
        Ok(participation)
    }

    /// [`Self::begin`] without anything to take part with: of a ledger that counts something else,
    /// such as a board's starts, and under whose chain key no session begins.
    ///
    /// # Errors
    /// As there.
    pub fn record(&mut self, round: u32, limits: &Limits) -> Result<(), LedgerError> {
        self.record_step(round, limits, None)
    }

    /// [`Self::record`] with what [`Self::step`] gives.
    pub(crate) fn record_step(
        &mut self,
        round: u32,
        limits: &Limits,
        step: Option<&ChainKey>,
    ) -> Result<(), LedgerError> {
        let mut append = Append::EMPTY;
        self.next(round, limits, step, &mut append)?;
        self.write(&mut append)
    }

    pub(super) fn begin_life(&mut self, nonce: LedgerNonce, key: Key) -> Result<(), LedgerError> {
        let mut append = Append::EMPTY;
        let mut record = Record::first(ChainKey::new(key), nonce);
        self.prepare(&mut record, &mut append)?;
        self.write(&mut append)
    }

    /// Writes both copies of a record, which counts from then on.
    #[inline(never)]
    fn write(&mut self, append: &mut Append) -> Result<(), LedgerError> {
        let flash = |_| LedgerError::Flash;
        let first = 2 * append.slot;
        let start = place(first, F::ERASE_SIZE);
        let end = start + slot_bytes(F::ERASE_SIZE) as u32;
        self.flash.erase(start, end).map_err(flash)?;
        for copy in [first, first + 1] {
            let [written, read] = &mut append.copies;
            let at = place(copy, F::ERASE_SIZE);
            self.flash.write(at, written).map_err(flash)?;
            self.read(copy, read)?;
            append.check()?;
        }
        self.appended(append)
    }

    /// Reads a copy of the record, into memory of the caller that is wiped there: a result would be
    /// on the stack twice.
    #[inline(never)]
    fn read(&mut self, copy: u32, bytes: &mut [u8; RECORD_BYTES]) -> Result<(), LedgerError> {
        let read = self.flash.read(place(copy, F::ERASE_SIZE), bytes);
        read.map_err(|_| LedgerError::Flash)
    }
}
