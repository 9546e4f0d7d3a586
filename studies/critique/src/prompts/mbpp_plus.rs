//! Prompts for functions that assertions call: MBPP+, and the function problems of TACO and APPS.

/// Asks for the function in one fence, without tests of the model's own.
pub(super) fn generation(problem: &str) -> String {
    format!(
        "Write Python code that solves the problem below.\n\n\
         <problem>\n{problem}\n</problem>\n\n\
         <format>\n\
         Define what the problem asks for under the name that it gives; leave out test cases and example calls.\n\
         Put all of the code into one block:\n\
         ```python\n\
         # the code\n\
         ```\n\
         </format>"
    )
}
