//! Pure learning algorithms (advantage, loss, KL, aggregation, packing) and the trainers that apply them.
