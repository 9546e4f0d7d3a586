//! What a prompt shows of a memory, within its budget.

use super::{
    config::FactOrder,
    fact::{Fact, FactId, FactKind},
    manager::MemoryManager,
    search::Hit,
    sentences::cut_to_tokens,
    state::{BlockTokens, MemoryState},
};

/// How many tokens the blocks of a prompt may take, each and together, and how facts are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ViewBudget {
    pub total: usize,
    pub core: usize,
    pub summary: usize,
    pub facts: usize,
    pub window: usize,
    pub fact_line: FactLine,
}

/// How a fact is written in a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FactLine {
    /// `f000012 (8 May 2023): Ana lives in Rome.`
    #[default]
    IdAndTime,
    /// `f000012: Ana lives in Rome.`
    Id,
    /// `(8 May 2023) Ana lives in Rome.`
    Time,
    /// `Ana lives in Rome.`
    Text,
}

/// The memory blocks of a prompt. Lines of a block are joined by line breaks; `tokens` counts them so.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryView {
    pub core: String,
    pub summary: String,
    pub facts: Vec<ShownFact>,
    /// Oldest first.
    pub window: Vec<ShownTurn>,
    pub tokens: BlockTokens,
    pub cut: Cut,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShownFact {
    pub id: FactId,
    pub kind: FactKind,
    pub timestamp: Option<String>,
    pub text: String,
    pub score: f64,
    /// All of it, as the budget's `fact_line` has it.
    pub line: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ShownTurn {
    pub turn_id: u32,
    pub timestamp: Option<String>,
    /// Its last lines where not all of it fits.
    pub text: String,
}

/// What did not fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cut {
    /// Retrieved facts that are not shown, best first.
    pub facts: Vec<FactId>,
    /// Tokens that each block is short of what it would have been without a budget.
    pub tokens: BlockTokens,
}

impl Cut {
    pub fn is_nothing(&self) -> bool {
        self.tokens.total() == 0 && self.facts.is_empty()
    }
}

impl Default for ViewBudget {
    /// No limit.
    fn default() -> Self {
        Self {
            total: usize::MAX,
            core: usize::MAX,
            summary: usize::MAX,
            facts: usize::MAX,
            window: usize::MAX,
            fact_line: FactLine::default(),
        }
    }
}

impl FactLine {
    pub fn write(self, fact: &Fact) -> String {
        let time = fact.timestamp.as_deref();
        match (self, time) {
            (Self::IdAndTime, Some(time)) => format!("{} ({time}): {}", fact.id, fact.text),
            (Self::IdAndTime | Self::Id, _) => format!("{}: {}", fact.id, fact.text),
            (Self::Time, Some(time)) => format!("({time}) {}", fact.text),
            (Self::Time | Self::Text, _) => fact.text.clone(),
        }
    }
}

impl MemoryView {
    pub fn facts_text(&self) -> String {
        let lines: Vec<&str> = self.facts.iter().map(|fact| fact.line.as_str()).collect();
        lines.join("\n")
    }

    pub fn window_text(&self) -> String {
        let texts: Vec<&str> = self.window.iter().map(|turn| turn.text.as_str()).collect();
        texts.join("\n")
    }
}

impl MemoryManager {
    /// The blocks of a prompt. First each block is cut to its own budget, then all of them to the total:
    /// retrieved facts go first, the worst before the better, then lines of the window, the oldest first, then
    /// the end of the summary, then that of the core.
    pub fn render_view(
        &self,
        state: &MemoryState,
        hits: &[Hit],
        budget: &ViewBudget,
    ) -> MemoryView {
        let ranked: Vec<ShownFact> = hits
            .iter()
            .filter_map(|hit| Some((hit, state.fact(hit.item_id)?)))
            .map(|(hit, fact)| ShownFact {
                id: fact.id,
                kind: fact.kind,
                timestamp: fact.timestamp.clone(),
                text: fact.text.clone(),
                score: hit.score,
                line: budget.fact_line.write(fact),
            })
            .collect();
        let mut view = MemoryView::default();
        // Of the window without its line breaks: they are not counted but where they are shown.
        let whole = BlockTokens {
            facts: self.lines_tokens(&ranked),
            ..state.tokens()
        };
        // What is left for a block is the total less what the blocks that shrink after it need.
        let mut room = budget.total;
        (view.core, view.tokens.core) = self.shortened(state.core(), budget.core.min(room));
        room -= view.tokens.core;
        (view.summary, view.tokens.summary) =
            self.shortened(state.summary(), budget.summary.min(room));
        room -= view.tokens.summary;
        self.fill_window(state, &mut view, budget.window.min(room));
        room -= view.tokens.window;
        self.fill_facts(state, &mut view, ranked, budget.facts.min(room));
        view.cut.tokens = BlockTokens {
            core: whole.core.saturating_sub(view.tokens.core),
            summary: whole.summary.saturating_sub(view.tokens.summary),
            facts: whole.facts.saturating_sub(view.tokens.facts),
            window: whole.window.saturating_sub(view.tokens.window),
        };
        view
    }

    fn shortened(&self, text: &str, limit: usize) -> (String, usize) {
        let kept = cut_to_tokens(text, limit, &|text| self.count(text));
        (kept.to_owned(), self.count(kept))
    }

    fn lines_tokens(&self, facts: &[ShownFact]) -> usize {
        let lines: Vec<&str> = facts.iter().map(|fact| fact.line.as_str()).collect();
        self.count(&lines.join("\n"))
    }

    fn fill_facts(
        &self,
        state: &MemoryState,
        view: &mut MemoryView,
        mut ranked: Vec<ShownFact>,
        limit: usize,
    ) {
        let mut tokens = self.lines_tokens(&ranked);
        let mut gone = Vec::new();
        while tokens > limit
            && let Some(last) = ranked.pop()
        {
            gone.push(last.id);
            tokens = self.lines_tokens(&ranked);
        }
        gone.reverse();
        if self.config.fact_order == FactOrder::Written {
            ranked.sort_by_key(|shown| state.fact(shown.id).map(Fact::last_write));
            // Tokens can merge over line breaks, and differently in another order.
            tokens = self.lines_tokens(&ranked);
        }
        view.facts = ranked;
        view.tokens.facts = tokens;
        view.cut.facts = gone;
    }

    /// As many of the last lines of the recent turns as fit; a line break between turns counts as one.
    fn fill_window(&self, state: &MemoryState, view: &mut MemoryView, limit: usize) {
        let turns: Vec<_> = state.window().collect();
        let mut room = limit;
        for turn in turns.into_iter().rev() {
            let line_break = usize::from(!view.window.is_empty());
            let needed = turn.tokens as usize + line_break;
            let text = if needed <= room {
                turn.text.clone()
            } else {
                self.last_lines(&turn.text, room.saturating_sub(line_break))
            };
            let is_whole = text.len() == turn.text.len();
            if !text.is_empty() {
                room = room.saturating_sub(needed);
                view.window.insert(
                    0,
                    ShownTurn {
                        turn_id: turn.turn_id,
                        timestamp: turn.timestamp.clone(),
                        text,
                    },
                );
            }
            if !is_whole {
                break;
            }
        }
        view.tokens.window = self.count(&view.window_text());
        while view.tokens.window > limit && !view.window.is_empty() {
            view.window.remove(0);
            view.tokens.window = self.count(&view.window_text());
        }
    }

    /// The last lines of a text that fit; if its last line alone is too long, the beginning of that.
    fn last_lines(&self, text: &str, limit: usize) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let fits = |first: usize| self.count(&lines[first..].join("\n")) <= limit;
        let first = (0..lines.len()).find(|first| fits(*first));
        match (first, lines.last()) {
            (Some(first), _) => lines[first..].join("\n"),
            (None, Some(last)) => cut_to_tokens(last, limit, &|text| self.count(text)).to_owned(),
            (None, None) => String::new(),
        }
    }
}
