//! Trees that branch.

pub struct Tree {
    height: u32,
}

impl Tree {
    pub fn branch(&mut self) -> u32 {
        measure(self.height)
    }
}

fn measure(height: u32) -> u32 {
    height + 1
}
