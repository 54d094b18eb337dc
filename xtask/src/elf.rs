//! Sizes of a program in flash and RAM, and addresses of its functions.

use std::error::Error;
use std::path::Path;

use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SectionKind, elf};

/// Bytes of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Code, with the vector table.
    pub text: u64,
    /// Constants.
    pub rodata: u64,
    /// Initial values of variables, in flash and in RAM.
    pub data: u64,
    /// Variables initialised with zero.
    pub bss: u64,
}

impl Sizes {
    pub fn flash(&self) -> u64 {
        self.text + self.rodata + self.data
    }

    pub fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let bytes = std::fs::read(path)?;
        let file = object::File::parse(bytes.as_slice())?;
        let mut sizes = Self::default();
        for section in file.sections() {
            let SectionFlags::Elf { sh_flags } = section.flags() else {
                continue;
            };
            // A RISC-V linker script declares all remaining RAM as the stack.
            let stack = matches!(section.name(), Ok(".stack" | ".heap"));
            if sh_flags & u64::from(elf::SHF_ALLOC) == 0 || stack {
                continue;
            }
            let place = match section.kind() {
                SectionKind::Text => &mut sizes.text,
                SectionKind::Data => &mut sizes.data,
                SectionKind::UninitializedData => &mut sizes.bss,
                _ => &mut sizes.rodata,
            };
            *place += section.size();
        }
        Ok(sizes)
    }
}

/// Returns the address of a function in a module.
pub fn function(path: &Path, module: &str, name: &str) -> Result<u32, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let file = object::File::parse(bytes.as_slice())?;
    // Both of Rust's mangling schemes contain the names in this form, with their lengths.
    let mangled = format!("{}{module}{}{name}", module.len(), name.len());
    let is_named = |symbol: &object::Symbol<'_, '_>| {
        symbol.name().is_ok_and(|symbol| symbol.contains(&mangled))
    };
    let symbol = file.symbols().find(is_named);
    let symbol = symbol.ok_or_else(|| format!("{}: no {module}::{name}", path.display()))?;
    // The lowest bit of an address marks Thumb code.
    Ok(u32::try_from(symbol.address())? & !1)
}
