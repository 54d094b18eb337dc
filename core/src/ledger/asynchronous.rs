//! A ledger on flash that is awaited, such as that of an nRF52 under the SoftDevice: what `flash`
//! does, in the same order.
//!
//! A future that is dropped before it is ready is a power cut: the round may count as used, and
//! nothing was drawn from its streams.

use embedded_storage_async::nor_flash::NorFlash;

use super::{
    Append, CopyBytes, Ledger, LedgerError, LedgerNonce, Limits, RECORD_BYTES, Search,
    check_geometry, place, record::Record, slot_bytes,
};
use crate::{
    crypto::Key, identity::Identity, participation::Participation, secrets::Secrets,
    wire::keys::ChainKey,
};

impl<F: NorFlash> Ledger<F> {
    /// [`Self::create`] on asynchronous flash.
    ///
    /// # Errors
    /// As there.
    pub async fn create_async(flash: F, nonce: LedgerNonce, key: Key) -> Result<Self, LedgerError> {
        let mut ledger = Self::checked(flash)?;
        match ledger.find_async().await {
            Ok(false) => ledger.begin_life_async(nonce, key).await?,
            Ok(true) | Err(LedgerError::Corrupt) => return Err(LedgerError::NotBlank),
            Err(error) => return Err(error),
        }
        Ok(ledger)
    }

    /// [`Self::open`] on asynchronous flash.
    ///
    /// # Errors
    /// As there.
    pub async fn open_async(flash: F) -> Result<Self, LedgerError> {
        Self::open_or_async(flash, None).await
    }

    /// [`Self::open_or_create`] on asynchronous flash.
    ///
    /// # Errors
    /// As there.
    pub async fn open_or_create_async(
        flash: F,
        fresh: LedgerNonce,
        key: Option<Key>,
    ) -> Result<Self, LedgerError> {
        Self::open_or_async(flash, key.map(|key| (fresh, key))).await
    }

    async fn open_or_async(
        flash: F,
        fresh: Option<(LedgerNonce, Key)>,
    ) -> Result<Self, LedgerError> {
        let mut ledger = Self::checked(flash)?;
        if !ledger.find_async().await? {
            let (nonce, key) = fresh.ok_or(LedgerError::Blank)?;
            ledger.begin_life_async(nonce, key).await?;
        }
        Ok(ledger)
    }

    /// [`Self::begin`] on asynchronous flash.
    ///
    /// # Errors
    /// As there.
    pub async fn begin_async<S: Secrets>(
        &mut self,
        round: u32,
        identity: &mut Identity<S>,
        limits: &Limits,
    ) -> Result<Participation, LedgerError> {
        // Before anything is asked of an element, whose fault costs no participation.
        self.check(round, limits)?;
        let participation = self.participation(round, identity)?;
        let step = self.step(&mut identity.root)?;
        self.record_step_async(round, limits, step.as_ref()).await?;
        Ok(participation)
    }

    /// [`Self::record`] on asynchronous flash.
    ///
    /// # Errors
    /// As there.
    pub async fn record_async(&mut self, round: u32, limits: &Limits) -> Result<(), LedgerError> {
        self.record_step_async(round, limits, None).await
    }

    /// [`Self::record_async`] with what [`Self::step`] gives.
    pub(crate) async fn record_step_async(
        &mut self,
        round: u32,
        limits: &Limits,
        step: Option<&ChainKey>,
    ) -> Result<(), LedgerError> {
        let mut append = Append::EMPTY;
        self.next(round, limits, step, &mut append)?;
        self.write_async(&mut append).await
    }

    fn checked(flash: F) -> Result<Self, LedgerError> {
        check_geometry(
            [F::READ_SIZE, F::WRITE_SIZE, F::ERASE_SIZE],
            flash.capacity(),
        )?;
        Ok(Self::unread(flash))
    }

    async fn find_async(&mut self) -> Result<bool, LedgerError> {
        let (mut search, mut bytes) = (Search::START, CopyBytes::ZEROS);
        for copy in 0..Search::COPIES {
            self.read_async(copy, &mut bytes.0).await?;
            self.look(&mut search, &bytes.0)?;
        }
        self.is_found(&search)
    }

    async fn begin_life_async(&mut self, nonce: LedgerNonce, key: Key) -> Result<(), LedgerError> {
        let mut append = Append::EMPTY;
        let mut record = Record::first(ChainKey::new(key), nonce);
        self.prepare(&mut record, &mut append)?;
        self.write_async(&mut append).await
    }

    async fn write_async(&mut self, append: &mut Append) -> Result<(), LedgerError> {
        let flash = |_| LedgerError::Flash;
        let first = 2 * append.slot;
        let start = place(first, F::ERASE_SIZE);
        let end = start + slot_bytes(F::ERASE_SIZE) as u32;
        self.flash.erase(start, end).await.map_err(flash)?;
        for copy in [first, first + 1] {
            let [written, read] = &mut append.copies;
            let at = place(copy, F::ERASE_SIZE);
            let written = self.flash.write(at, written).await;
            written.map_err(flash)?;
            self.read_async(copy, read).await?;
            append.check()?;
        }
        self.appended(append)
    }

    async fn read_async(
        &mut self,
        copy: u32,
        bytes: &mut [u8; RECORD_BYTES],
    ) -> Result<(), LedgerError> {
        let read = self.flash.read(place(copy, F::ERASE_SIZE), bytes).await;
        read.map_err(|_| LedgerError::Flash)
    }
}
