//! The ledger on flash, in one source for blocking flash and for async flash, such as that of an
//! nRF52 with the SoftDevice.
//!
//! Dropping a future before it is ready is equivalent to a power cut: the round may count as used,
//! and nothing was drawn from its streams.

use super::{
    Append, CopyBytes, Ledger, LedgerError, LedgerNonce, Limits, RECORD_BYTES, Search,
    check_geometry, place, record::Record,
};
use crate::{
    crypto::Key, identity::Identity, participation::Participation, secrets::Secrets,
    wire::keys::ChainKey,
};

/// Implements the ledger on the `NorFlash` of the module, with these names of its public functions.
macro_rules! on_flash {
    (
        [$($async:tt $await:tt)?]
        $create:ident $open:ident $open_or_create:ident $begin:ident $record:ident
    ) => {
        impl<F: NorFlash> Ledger<F> {
            /// Writes the first record, once, when a device is provisioned, with a nonce that was
            /// never used before and the key shared with its coordinator.
            ///
            /// # Errors
            /// [`LedgerError::NotBlank`] unless the flash is erased or an earlier creation was
            /// interrupted, [`LedgerError::Geometry`], [`LedgerError::Flash`].
            pub $($async)? fn $create(
                flash: F,
                nonce: LedgerNonce,
                key: Key,
            ) -> Result<Self, LedgerError> {
                check(&flash)?;
                let mut ledger = Self::unread(flash);
                match find(&mut ledger)$(.$await)? {
                    Ok(false) => begin_life(&mut ledger, nonce, key)$(.$await)??,
                    Ok(true) | Err(LedgerError::Corrupt) => return Err(LedgerError::NotBlank),
                    Err(error) => return Err(error),
                }
                Ok(ledger)
            }

            /// Reads the current record, after every start.
            ///
            /// # Errors
            /// [`LedgerError::Blank`], [`LedgerError::Corrupt`], [`LedgerError::Geometry`],
            /// [`LedgerError::Flash`]. Without its ledger a device must not take part.
            pub $($async)? fn $open(flash: F) -> Result<Self, LedgerError> {
                open_or(flash, None)$(.$await)?
            }

            /// Reads the current record, or writes the first one on blank flash, with the key of
            /// the provisioning record and a nonce from the hardware's random number generator,
            /// drawn at this start. Without such a generator, use [`Self::open`]: a repeated nonce
            /// would repeat the streams of an erased ledger.
            ///
            /// Completely erased flash counts from 0 again, with other streams. The coordinator
            /// refuses the device until it is provisioned again.
            ///
            /// # Errors
            /// Those of [`Self::open`]. [`LedgerError::Blank`] only occurs without a key, which a
            /// provisioning record loses at the first start.
            pub $($async)? fn $open_or_create(
                flash: F,
                fresh: LedgerNonce,
                key: Option<Key>,
            ) -> Result<Self, LedgerError> {
                open_or(flash, key.map(|key| (fresh, key)))$(.$await)?
            }

            /// Records that the device takes part in `round`, and returns its participation, once.
            ///
            /// The streams derive from `identity` and this ledger ([`Identity`]).
            ///
            /// # Errors
            /// Those of [`Self::check`], [`LedgerError::Element`], and [`LedgerError::Flash`]. The
            /// round must then not begin, and may count as used.
            pub $($async)? fn $begin<S: Secrets>(
                &mut self,
                round: u32,
                identity: &mut Identity<S>,
                limits: &Limits,
            ) -> Result<Participation, LedgerError> {
                // Checks first, and then asks the element, whose failure costs no participation.
                self.check(round, limits)?;
                let participation = self.participation(round, identity)?;
                let step = self.step(&mut identity.root)?;
                record_step(self, round, limits, step.as_ref())$(.$await)??;
                Ok(participation)
            }

            /// Records a participation without returning it, for a ledger that counts something
            /// else, such as a board's starts, and whose chain key no session uses.
            ///
            /// # Errors
            /// Those of [`Self::begin`].
            pub $($async)? fn $record(
                &mut self,
                round: u32,
                limits: &Limits,
            ) -> Result<(), LedgerError> {
                record_step(self, round, limits, None)$(.$await)?
            }
        }

        #[inline(never)]
        $($async)? fn open_or<F: NorFlash>(
            flash: F,
            fresh: Option<(LedgerNonce, Key)>,
        ) -> Result<Ledger<F>, LedgerError> {
            check(&flash)?;
            let mut ledger = Ledger::unread(flash);
            if !find(&mut ledger)$(.$await)?? {
                let (nonce, key) = fresh.ok_or(LedgerError::Blank)?;
                begin_life(&mut ledger, nonce, key)$(.$await)??;
            }
            Ok(ledger)
        }

        fn check<F: NorFlash>(flash: &F) -> Result<(), LedgerError> {
            let sizes = [F::READ_SIZE, F::WRITE_SIZE, F::ERASE_SIZE];
            check_geometry(sizes, flash.capacity())
        }

        /// Finds the current record, and returns whether there is one. Does not change the flash.
        #[inline(never)]
        pub(in crate::ledger) $($async)? fn find<F: NorFlash>(
            ledger: &mut Ledger<F>,
        ) -> Result<bool, LedgerError> {
            let (mut search, mut bytes) = (Search::START, CopyBytes::ZEROS);
            for copy in 0..Search::COPIES {
                read(ledger, copy, &mut bytes.0)$(.$await)??;
                ledger.look(&mut search, &bytes.0)?;
            }
            ledger.is_found(&search)
        }

        pub(in crate::ledger) $($async)? fn begin_life<F: NorFlash>(
            ledger: &mut Ledger<F>,
            nonce: LedgerNonce,
            key: Key,
        ) -> Result<(), LedgerError> {
            let mut append = Append::EMPTY;
            let mut record = Record::first(ChainKey::new(key), nonce);
            ledger.prepare(&mut record, &mut append)?;
            write(ledger, &mut append)$(.$await)?
        }

        /// Records a participation, with the result of [`Ledger::step`].
        pub(crate) $($async)? fn record_step<F: NorFlash>(
            ledger: &mut Ledger<F>,
            round: u32,
            limits: &Limits,
            step: Option<&ChainKey>,
        ) -> Result<(), LedgerError> {
            let mut append = Append::EMPTY;
            ledger.next(round, limits, step, &mut append)?;
            write(ledger, &mut append)$(.$await)?
        }

        /// Writes both copies of a record, and makes it current.
        #[inline(never)]
        $($async)? fn write<F: NorFlash>(
            ledger: &mut Ledger<F>,
            append: &mut Append,
        ) -> Result<(), LedgerError> {
            let flash = |_| LedgerError::Flash;
            let (start, end) = append.range(F::ERASE_SIZE);
            ledger.flash.erase(start, end)$(.$await)?.map_err(flash)?;
            for copy in append.places() {
                let [written, read_back] = &mut append.copies;
                let at = place(copy, F::ERASE_SIZE);
                ledger.flash.write(at, written)$(.$await)?.map_err(flash)?;
                read(ledger, copy, read_back)$(.$await)??;
                append.check()?;
            }
            ledger.appended(append)
        }

        /// Reads a copy of the record into memory that the caller wipes. A returned value would be
        /// on the stack twice.
        #[inline(never)]
        $($async)? fn read<F: NorFlash>(
            ledger: &mut Ledger<F>,
            copy: u32,
            bytes: &mut [u8; RECORD_BYTES],
        ) -> Result<(), LedgerError> {
            let read = ledger.flash.read(place(copy, F::ERASE_SIZE), bytes)$(.$await)?;
            read.map_err(|_| LedgerError::Flash)
        }
    };
}

/// Blocking flash.
pub(crate) mod blocking {
    use super::*;
    use embedded_storage::nor_flash::NorFlash;

    on_flash!([] create open open_or_create begin record);
}

/// Async flash.
#[cfg(feature = "async")]
pub(crate) mod awaited {
    use super::*;
    use embedded_storage_async::nor_flash::NorFlash;

    on_flash!([async await] create_async open_async open_or_create_async begin_async record_async);
}
