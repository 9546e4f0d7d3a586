//! Runs groups of episodes under budgets and deadlines; every member is accounted for.
