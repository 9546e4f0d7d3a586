//! Porter's stemmer as the official scorers run it: with the departures of NLTK's default mode.
//!
//! M. F. Porter, An algorithm for suffix stripping, Program 14 (1980). LoCoMo's scorer and the package
//! `rouge-score` stem with NLTK, whose default departs from the paper: a few irregular words, words of up to
//! two letters left alone, `ies` and `ied` of four-letter words to `ie`, `y` to `i` only behind a consonant that
//! is not the first letter, stems of vowel and consonant count as consonant-vowel-consonant, and `fulli`,
//! `logi`, `bli` and a repeated `alli` in step 2. The Snowball stemmers for English are another algorithm
//! (Porter 2) and give other stems, so none of them can take this one's place.

/// The stem of a word, in lower case.
pub fn stem(word: &str) -> String {
    let lower = word.to_lowercase();
    if let Some((_, stem)) = IRREGULAR.iter().find(|(form, _)| *form == lower) {
        return (*stem).to_owned();
    }
    if word.chars().count() <= 2 {
        return lower;
    }
    let mut word = Word(lower.chars().collect());
    word.plural();
    word.past_and_gerund();
    word.final_y();
    word.step_2();
    word.apply(&STEP_3, 0);
    word.step_4();
    word.final_e();
    word.final_double_l();
    word.0.into_iter().collect()
}

const IRREGULAR: [(&str, &str); 16] = [
    ("sky", "sky"),
    ("skies", "sky"),
    ("dying", "die"),
    ("lying", "lie"),
    ("tying", "tie"),
    ("news", "news"),
    ("innings", "inning"),
    ("inning", "inning"),
    ("outings", "outing"),
    ("outing", "outing"),
    ("cannings", "canning"),
    ("canning", "canning"),
    ("howe", "howe"),
    ("proceed", "proceed"),
    ("exceed", "exceed"),
    ("succeed", "succeed"),
];

/// Suffixes and what takes their place; of those that a word ends with, the first counts.
type Rules = [(&'static str, &'static str)];

const STEP_2: [(&str, &str); 21] = [
    ("ational", "ate"),
    ("tional", "tion"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("izer", "ize"),
    ("bli", "ble"),
    ("alli", "al"),
    ("entli", "ent"),
    ("eli", "e"),
    ("ousli", "ous"),
    ("ization", "ize"),
    ("ation", "ate"),
    ("ator", "ate"),
    ("alism", "al"),
    ("iveness", "ive"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("aliti", "al"),
    ("iviti", "ive"),
    ("biliti", "ble"),
    ("fulli", "ful"),
];

const STEP_3: [(&str, &str); 7] = [
    ("icate", "ic"),
    ("ative", ""),
    ("alize", "al"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ful", ""),
    ("ness", ""),
];

const STEP_4: [(&str, &str); 11] = [
    ("al", ""),
    ("ance", ""),
    ("ence", ""),
    ("er", ""),
    ("ic", ""),
    ("able", ""),
    ("ible", ""),
    ("ant", ""),
    ("ement", ""),
    ("ment", ""),
    ("ent", ""),
];

const STEP_4_AFTER_ION: [(&str, &str); 7] = [
    ("ou", ""),
    ("ism", ""),
    ("ate", ""),
    ("iti", ""),
    ("ous", ""),
    ("ive", ""),
    ("ize", ""),
];

/// A word in lower case on its way to its stem.
struct Word(Vec<char>);

impl Word {
    fn plural(&mut self) {
        if self.ends("ies") && self.0.len() == 4 {
            self.replace("ies", "ie");
        } else if self.ends("sses") {
            self.replace("sses", "ss");
        } else if self.ends("ies") {
            self.replace("ies", "i");
        } else if self.ends("s") && !self.ends("ss") {
            self.replace("s", "");
        }
    }

    fn past_and_gerund(&mut self) {
        if self.ends("ied") {
            let to = if self.0.len() == 4 { "ie" } else { "i" };
            return self.replace("ied", to);
        }
        if self.ends("eed") {
            if measure(self.before("eed")) > 0 {
                self.replace("eed", "ee");
            }
            return;
        }
        let has_vowel = |stem: &[char]| consonants(stem).contains(&false);
        let Some(suffix) = ["ed", "ing"]
            .into_iter()
            .find(|suffix| self.ends(suffix) && has_vowel(self.before(suffix)))
        else {
            return;
        };
        self.replace(suffix, "");
        if self.ends("at") || self.ends("bl") || self.ends("iz") {
            self.0.push('e');
        } else if self.ends_in_double_consonant() {
            if !matches!(self.0.last(), Some('l' | 's' | 'z')) {
                self.0.pop();
            }
        } else if measure(&self.0) == 1 && ends_short(&self.0) {
            self.0.push('e');
        }
    }

    fn final_y(&mut self) {
        let [stem @ .., 'y'] = self.0.as_slice() else {
            return;
        };
        if stem.len() > 1 && consonants(stem).last() == Some(&true) {
            self.replace("y", "i");
        }
    }

    fn step_2(&mut self) {
        while self.ends("alli") && measure(self.before("alli")) > 0 {
            self.replace("alli", "al");
        }
        if self.apply(&STEP_2, 0) {
            return;
        }
        // The measure is that of all but `ogi`, so that `l` counts to it.
        if self.ends("logi") && measure(self.before("ogi")) > 0 {
            self.replace("logi", "log");
        }
    }

    fn step_4(&mut self) {
        if self.apply(&STEP_4, 1) {
            return;
        }
        if self.ends("ion") {
            let stem = self.before("ion");
            if measure(stem) > 1 && matches!(stem.last(), Some('s' | 't')) {
                self.replace("ion", "");
            }
            return;
        }
        self.apply(&STEP_4_AFTER_ION, 1);
    }

    fn final_e(&mut self) {
        if !self.ends("e") {
            return;
        }
        let stem = self.before("e");
        let m = measure(stem);
        if m > 1 || (m == 1 && !ends_short(stem)) {
            self.replace("e", "");
        }
    }

    fn final_double_l(&mut self) {
        if self.ends("ll") && measure(self.before("l")) > 1 {
            self.replace("l", "");
        }
    }

    /// Replaces the first of these suffixes that the word ends with if what is before it has a measure
    /// above `above`. False when it ends with none of them.
    fn apply(&mut self, rules: &Rules, above: usize) -> bool {
        let Some((suffix, to)) = rules.iter().find(|(suffix, _)| self.ends(suffix)) else {
            return false;
        };
        if measure(self.before(suffix)) > above {
            self.replace(suffix, to);
        }
        true
    }

    fn ends(&self, suffix: &str) -> bool {
        let n = self.0.len();
        suffix.len() <= n
            && self.0[n - suffix.len()..]
                .iter()
                .copied()
                .eq(suffix.chars())
    }

    /// What stands before a suffix that the word ends with; suffixes are ASCII.
    fn before(&self, suffix: &str) -> &[char] {
        &self.0[..self.0.len() - suffix.len()]
    }

    fn replace(&mut self, suffix: &str, to: &str) {
        self.0.truncate(self.0.len() - suffix.len());
        self.0.extend(to.chars());
    }

    fn ends_in_double_consonant(&self) -> bool {
        let n = self.0.len();
        n >= 2 && self.0[n - 1] == self.0[n - 2] && consonants(&self.0)[n - 1]
    }
}

/// Which letters are consonants: all but a, e, i, o, u, and `y` behind a consonant.
fn consonants(letters: &[char]) -> Vec<bool> {
    let mut flags: Vec<bool> = Vec::with_capacity(letters.len());
    for letter in letters {
        flags.push(match letter {
            'a' | 'e' | 'i' | 'o' | 'u' => false,
            'y' => flags.last() != Some(&true),
            _ => true,
        });
    }
    flags
}

/// The paper's m: how often a consonant follows a vowel.
fn measure(letters: &[char]) -> usize {
    let flags = consonants(letters);
    flags.windows(2).filter(|pair| !pair[0] && pair[1]).count()
}

/// The paper's *o: the end is consonant, vowel, consonant, the last not w, x or y; or the whole is vowel,
/// consonant.
fn ends_short(letters: &[char]) -> bool {
    match consonants(letters).as_slice() {
        [false, true] => true,
        [.., true, false, true] => !matches!(letters.last(), Some('w' | 'x' | 'y')),
        _ => false,
    }
}
