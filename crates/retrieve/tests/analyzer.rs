//! What becomes a term.

use proptest::prelude::*;
use retrieve::{Analyzer, Stemming, UnspacedText};

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(Analyzer::default().terms(text), expected, "{text:?}");
    // What ASCII text has a short way for must come out the same on the long one.
    let long = format!("\u{2014}{text}\u{2014}");
    assert_eq!(Analyzer::default().terms(&long), expected, "{long:?}");
}

#[test]
fn words_are_in_lower_case_and_without_signs() {
    check("", &[]);
    check(" ... -- !", &[]);
    check("Tom moved, in MAY.", &["tom", "moved", "in", "may"]);
    check("snake_case, e-mail", &["snake", "case", "e", "mail"]);
    check("Ünïcode Straße ΑΘΗΝΑ", &["ünïcode", "straße", "αθηνα"]);
}

#[test]
fn apostrophes_belong_to_words_but_possessives_do_not() {
    check(
        "don't 'quoted' dogs' o'clock",
        &["don't", "quoted", "dogs", "o'clock"],
    );
    check("Anna's Tea", &["anna", "tea"]);
    check("Anna\u{2019}s don\u{2019}t", &["anna", "don't"]);
}

#[test]
fn numbers_keep_their_points() {
    check(
        "3.14 1,000.5 10:30 v2.",
        &["3.14", "1,000.5", "10", "30", "v2"],
    );
    check(
        "2024-05-01 a.b 5.x",
        &["2024", "05", "01", "a", "b", "5", "x"],
    );
}

#[test]
fn forms_of_a_letter_are_one() {
    check("cafe\u{301} café CAFÉ", &["café", "café", "café"]);
    check("ＡＢＣ１２", &["abc12"]);
    check("soft\u{ad}hyphen", &["softhyphen"]);
    // A virama inside a Hindi word does not end it.
    check("नमस्ते दुनिया", &["नमस्ते", "दुनिया"]);
}

#[test]
fn scripts_without_spaces_become_pairs() {
    check("我喜欢茶", &["我喜", "喜欢", "欢茶"]);
    check("茶、茶", &["茶", "茶"]);
    check(
        "NHKニュースを見る",
        &["nhk", "ニュ", "ュー", "ース", "スを", "を見", "見る"],
    );
    check("서울에서 왔다", &["서울", "울에", "에서", "왔다"]);
    // Half-width katakana and a separate voicing mark are the ordinary letters.
    check("ｶﾞｽ", &["ガス"]);
    // Thai vowel signs stay with their consonant.
    check("กิน", &["ก\u{e34}น"]);
    check("ที่นี่", &["ท\u{e35}\u{e48}น\u{e35}\u{e48}"]);
}

#[test]
fn characters_can_be_terms_besides() {
    let analyzer = Analyzer {
        unspaced_text: UnspacedText::BigramsAndCharacters,
        ..Analyzer::default()
    };
    assert_eq!(
        analyzer.terms("喝茶 tea 茶"),
        ["喝", "喝茶", "茶", "tea", "茶"]
    );
}

#[test]
fn stemming_is_for_english_words_only() {
    let analyzer = Analyzer {
        stemming: Stemming::English,
        ..Analyzer::default()
    };
    assert_eq!(
        analyzer.terms("Running dogs ran happily to 3.14 cafés"),
        ["run", "dog", "ran", "happili", "to", "3.14", "cafés"]
    );
    let read: Analyzer = serde_json::from_str(r#"{"stemming": "english"}"#).unwrap();
    assert_eq!(read, analyzer);
}

proptest! {
    #[test]
    fn both_ways_of_ascii_are_one_and_no_term_is_empty(
        text in "[ -~\n]{0,40}",
        any in "\\PC{0,20}",
        letters in "[a茶é'’.,1〇\u{301}ก\u{e34} ]{0,20}",
    ) {
        let analyzer = Analyzer::default();
        let long = format!("\u{2014}{text}\u{2014}");
        prop_assert_eq!(analyzer.terms(&text), analyzer.terms(&long));
        for text in [text, any, letters] {
            for term in analyzer.terms(&text) {
                prop_assert!(term.starts_with(char::is_alphanumeric), "{:?} of {:?}", term, text);
            }
        }
    }
}
