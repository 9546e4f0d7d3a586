//! Programs and tests to a Verdict; expected values never enter the jail.
