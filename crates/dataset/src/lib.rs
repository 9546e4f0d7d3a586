//! JSONL rows to typed tasks; errors name file, row and field.
