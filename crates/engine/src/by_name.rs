//! The common part of the engines that make one call for each file or directory, by its name: everything but the call.
//!
//! Invariant: between the opening of a name and its detachment the call is made once, by the first operation on it; other
//! operations touch nothing.

use std::ffi::{CStr, CString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;

use fiord_plan::{Action, EngineDescriptor, FileIndex, Op};
use fiord_sys::errno::Errno;

use crate::boxed::BoxedSync;
use crate::contract::{Arena, ArenaAccess, Engine, Executed, NamedTarget, Outcome, Slot, SyncEngine};
use crate::definition::{EngineDefinition, Setup, Visitor};

/// The call in which such an engine differs from the others.
pub trait NameCalls: fmt::Debug + Sized + 'static {
    /// The engine's own settings.
    type Settings: Default + fmt::Debug + PartialEq + Clone + Send + Sync + 'static;

    /// The engine's description.
    const DESCRIPTOR: &'static EngineDescriptor;

    /// Makes the call.
    ///
    /// # Errors
    /// The kernel's.
    fn call(settings: &Self::Settings, name: &CStr) -> io::Result<()>;
}

/// A name, and whether its call is still to be made.
#[derive(Debug, Default)]
struct Pending {
    name: CString,
    is_due: bool,
}

/// Such an engine.
#[derive(Debug)]
pub(crate) struct ByNameEngine<'arena, C: NameCalls> {
    settings: C::Settings,
    names: Box<[Pending]>,
    last: Executed,
    arena: Arena<'arena>,
}

/// Makes an engine of a `NameCalls`.
macro_rules! engine_of_calls {
    ($engine:ty) => {
        impl $crate::definition::EngineDefinition for $engine {
            type Settings = <$engine as $crate::by_name::NameCalls>::Settings;

            const DESCRIPTOR: &'static fiord_plan::EngineDescriptor =
                <$engine as $crate::by_name::NameCalls>::DESCRIPTOR;

            fn set_up<'a, V: $crate::definition::Visitor<'a>>(
                settings: &Self::Settings,
                setup: $crate::definition::Setup<'_, 'a>,
                visitor: V,
            ) -> V::Output {
                $crate::by_name::set_up::<$engine, V>(settings, setup, visitor)
            }
        }
    };
}

pub(crate) use engine_of_calls;

/// Sets such an engine up. Boxed: its calls take microseconds.
pub(crate) fn set_up<'a, C: NameCalls + EngineDefinition, V: Visitor<'a>>(
    settings: &<C as NameCalls>::Settings,
    Setup { job, arena }: Setup<'_, 'a>,
    visitor: V,
) -> V::Output {
    let names = (0..job.files).map(|_| Pending::default()).collect();
    let engine = ByNameEngine::<C> { settings: settings.clone(), names, last: Executed::Io, arena };
    visitor.synchronous(Ok(BoxedSync::new(engine)))
}

impl<'arena, C: NameCalls> Engine<'arena> for ByNameEngine<'arena, C> {
    fn open(&mut self, file: FileIndex, target: &NamedTarget<'_>) -> io::Result<()> {
        let pending = &mut self.names[file as usize];
        let name = target.name.as_os_str().as_bytes();
        // The same in each pass.
        if pending.name.as_bytes() != name {
            pending.name = CString::new(name)?;
        }
        pending.is_due = true;
        Ok(())
    }

    fn detach(&mut self, file: FileIndex) {
        self.names[file as usize].is_due = false;
    }

    fn executed(&self) -> Executed {
        self.last
    }

    fn arena(&mut self) -> ArenaAccess<'_, 'arena> {
        ArenaAccess::of(&mut self.arena)
    }
}

impl<'arena, C: NameCalls> SyncEngine<'arena> for ByNameEngine<'arena, C> {
    fn execute(&mut self, op: Op, _slot: &mut Slot<'arena>) -> Outcome {
        let transfers = match op.action {
            Action::Read | Action::Write | Action::Trim | Action::ResetZone => true,
            Action::Sync | Action::DataSync | Action::RangeSync(_) => false,
        };
        let pending = &mut self.names[op.file as usize];
        if !transfers || !std::mem::take(&mut pending.is_due) {
            self.last = Executed::Earlier;
            return Outcome::whole(&op);
        }
        self.last = Executed::Io;
        match C::call(&self.settings, &pending.name) {
            Ok(()) => Outcome::whole(&op),
            Err(error) => Outcome::Failed(Errno::of(&error).unwrap_or(Errno(libc::EIO))),
        }
    }
}
