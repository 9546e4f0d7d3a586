//! The two layouts of padded rows.

use std::collections::BTreeMap;

use record::{StepKey, TokenId};
use serde::{Deserialize, Serialize};

use super::{Matrix, Row};

/// Where padding stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// `[N, T]`: prompt and response together, padded behind. Everything is as wide as `input_ids`.
    RightPadded,
    /// Prompts padded before to `[N, P]`, responses behind to `[N, R]`, `input_ids` both together: what verl
    /// reads. What speaks of sampled tokens is as wide as responses.
    VerlSplit,
}

/// How rows are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackOptions {
    pub layout: Layout,
    /// Stands in padding. It may be a token of rows: nothing is told from its id.
    pub pad_id: TokenId,
    /// Rows of padding make the number of rows divisible by this; 0 and 1 add none.
    pub rows_divisible_by: usize,
}

/// Rows as matrices. `N` rows, of which those without a [`RowInfo::key`] are padding: one attended token, so
/// that no softmax is over nothing, no sampled token, and no part in any statistic.
#[derive(Clone, Debug, PartialEq)]
pub struct Packed {
    pub options: PackOptions,
    /// Columns of `input_ids` before the responses; 0 in [`Layout::RightPadded`].
    pub prompt_width: usize,
    /// `[N, T]`
    pub input_ids: Matrix<i64>,
    /// `[N, T]`, 1 for tokens of the row.
    pub attention_mask: Matrix<i64>,
    /// `[N, T]`, attended tokens before; 0 on padding.
    pub position_ids: Matrix<i64>,
    /// `[N, T - prompt_width]`, 1 for sampled tokens.
    pub response_mask: Matrix<i64>,
    /// As `response_mask`: the log-prob of the token at the same place, as it was sampled.
    pub rollout_log_probs: Matrix<f32>,
    /// As `response_mask`: the episode's reward on the last sampled token of each row.
    pub token_level_scores: Matrix<f32>,
    /// As `response_mask`.
    pub advantages: Matrix<f32>,
    /// One a row.
    pub rows: Vec<RowInfo>,
}

/// What is known of a row beside its tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct RowInfo {
    /// `None` is a row of padding.
    pub key: Option<StepKey>,
    pub uid: String,
    /// Counts distinct `uid`s as they first come; -1 is padding.
    pub group_id: i64,
    pub agent_role: String,
    pub turn: Option<u32>,
    pub data_source: String,
    pub reward: f32,
    pub prompt_length: usize,
}

impl RowInfo {
    pub fn is_pad(&self) -> bool {
        self.key.is_none()
    }

    fn padding() -> Self {
        Self {
            key: None,
            uid: "pad".to_owned(),
            group_id: -1,
            agent_role: String::new(),
            turn: None,
            data_source: String::new(),
            reward: 0.0,
            prompt_length: 1,
        }
    }
}

/// Packs `rows`, in their order, as narrow as they allow.
///
/// # Panics
/// When a row has another number of mask entries, log-probs or advantages than of response tokens.
pub fn pack(rows: &[Row], options: PackOptions) -> Packed {
    let divisor = options.rows_divisible_by.max(1);
    let count = rows.len().next_multiple_of(divisor);
    let padded = count > rows.len();
    let longest = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let (prompt_width, width) = match options.layout {
        Layout::RightPadded => {
            let width = longest(&|row| row.prompt.len() + row.response.len());
            (0, width.max(usize::from(padded)))
        }
        Layout::VerlSplit => {
            let prompts = longest(&|row| row.prompt.len()).max(usize::from(padded));
            (prompts, prompts + longest(&|row| row.response.len()))
        }
    };
    let responses = width - prompt_width;
    let mut packed = Packed {
        options,
        prompt_width,
        input_ids: Matrix::filled(count, width, options.pad_id.into()),
        attention_mask: Matrix::filled(count, width, 0),
        position_ids: Matrix::filled(count, width, 0),
        response_mask: Matrix::filled(count, responses, 0),
        rollout_log_probs: Matrix::filled(count, responses, 0.0),
        token_level_scores: Matrix::filled(count, responses, 0.0),
        advantages: Matrix::filled(count, responses, 0.0),
        rows: Vec::with_capacity(count),
    };
    let mut groups: BTreeMap<&str, i64> = BTreeMap::new();
    for (index, row) in rows.iter().enumerate() {
        let next = groups.len() as i64;
        let group_id = *groups.entry(&row.uid).or_insert(next);
        packed.write(index, row);
        packed.rows.push(RowInfo {
            key: Some(row.key),
            uid: row.uid.clone(),
            group_id,
            agent_role: row.agent_role.clone(),
            turn: row.turn,
            data_source: row.data_source.clone(),
            reward: row.reward,
            prompt_length: row.prompt.len(),
        });
    }
    for index in rows.len()..count {
        let place = prompt_width.saturating_sub(1);
        packed.attention_mask.row_mut(index)[place] = 1;
        packed.rows.push(RowInfo::padding());
    }
    packed
}

/// The rows of all parts, one after the other, packed anew: widths, group numbers and padding are those of
/// the whole.
pub fn concat(parts: &[Packed], options: PackOptions) -> Packed {
    let rows: Vec<Row> = parts.iter().flat_map(Packed::unpad).collect();
    pack(&rows, options)
}

impl Packed {
    fn write(&mut self, index: usize, row: &Row) {
        let length = row.response.len();
        let lengths = [row.mask.len(), row.logprobs.len(), row.advantages.len()];
        assert_eq!(lengths, [length; 3], "one a token of the response");
        let (start, behind) = self.places(row.prompt.len());
        let ids = row.prompt.iter().chain(&row.response);
        let end = start + row.prompt.len() + length;
        let slots = &mut self.input_ids.row_mut(index)[start..end];
        for (slot, &id) in slots.iter_mut().zip(ids) {
            *slot = id.into();
        }
        self.attention_mask.row_mut(index)[start..end].fill(1);
        for (position, slot) in (0..).zip(&mut self.position_ids.row_mut(index)[start..end]) {
            *slot = position;
        }
        let range = behind..behind + length;
        let masks = &mut self.response_mask.row_mut(index)[range.clone()];
        for (slot, &sampled) in masks.iter_mut().zip(&row.mask) {
            *slot = sampled.into();
        }
        for (matrix, values) in [
            (&mut self.rollout_log_probs, &row.logprobs),
            (&mut self.advantages, &row.advantages),
        ] {
            let slots = &mut matrix.row_mut(index)[range.clone()];
            for ((slot, &value), &sampled) in slots.iter_mut().zip(values).zip(&row.mask) {
                *slot = if sampled { value } else { 0.0 };
            }
        }
        if let Some(last) = row.mask.iter().rposition(|sampled| *sampled) {
            self.token_level_scores.row_mut(index)[behind + last] = row.reward;
        }
    }

    /// Where a row with a prompt of this length begins in `input_ids`, and where its response begins in what
    /// speaks of responses.
    fn places(&self, prompt: usize) -> (usize, usize) {
        match self.options.layout {
            Layout::RightPadded => (0, prompt),
            Layout::VerlSplit => (self.prompt_width - prompt, 0),
        }
    }

    /// The rows again, without padding.
    pub fn unpad(&self) -> Vec<Row> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(index, info)| {
            let key = info.key?;
            let (start, behind) = self.places(info.prompt_length);
            let attended = self.attention_mask.row(index)[start..].iter();
            let end = start + attended.take_while(|mask| **mask == 1).count();
            let split = start + info.prompt_length;
            let ids = |range: std::ops::Range<usize>| -> Vec<TokenId> {
                let ids = self.input_ids.row(index)[range].iter();
                ids.map(|&id| id as TokenId).collect()
            };
            let range = behind..behind + (end - split);
            Some(Row {
                key,
                uid: info.uid.clone(),
                agent_role: info.agent_role.clone(),
                turn: info.turn,
                data_source: info.data_source.clone(),
                prompt: ids(start..split),
                response: ids(split..end),
                mask: self.response_mask.row(index)[range.clone()]
                    .iter()
                    .map(|mask| *mask == 1)
                    .collect(),
                logprobs: self.rollout_log_probs.row(index)[range.clone()].to_vec(),
                advantages: self.advantages.row(index)[range].to_vec(),
                reward: info.reward,
            })
        })
        .collect()
    }

    /// These rows in this order: what reorders, repeats and splits.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn select(&self, rows: &[usize]) -> Self {
        Self {
            options: self.options,
            prompt_width: self.prompt_width,
            input_ids: self.input_ids.select(rows),
            attention_mask: self.attention_mask.select(rows),
            position_ids: self.position_ids.select(rows),
            response_mask: self.response_mask.select(rows),
            rollout_log_probs: self.rollout_log_probs.select(rows),
            token_level_scores: self.token_level_scores.select(rows),
            advantages: self.advantages.select(rows),
            rows: rows.iter().map(|&row| self.rows[row].clone()).collect(),
        }
    }
}
