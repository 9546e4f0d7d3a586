//! Prompts for programs that read standard input and write standard output.

/// Asks for a whole program in one fence.
pub(super) fn generation(problem: &str) -> String {
    format!(
        "Write a Python program that solves the problem below.\n\n\
         <problem>\n{problem}\n</problem>\n\n\
         <format>\n\
         Read the input from standard input and write the answer to standard output, and nothing else there.\n\
         Put the whole program into one block:\n\
         ```python\n\
         # the program\n\
         ```\n\
         </format>"
    )
}
