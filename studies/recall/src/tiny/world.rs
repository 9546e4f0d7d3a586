//! The words of the small world: people, months, and what can be true of a person.

/// Who talks.
pub(super) const PEOPLE: [&str; 10] = [
    "Ann", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo", "Ida", "Jon",
];

/// What says nothing about anybody.
pub(super) const CHATTER: [&str; 8] = [
    "the weather is fine today.",
    "I slept badly last night.",
    "the train was late again.",
    "that sounds good to me.",
    "I have to go soon.",
    "it was a long week.",
    "the news made me laugh.",
    "we should meet more often.",
];

/// What greets and takes leave; the rule of extraction drops these.
pub(super) const GREETINGS: [&str; 4] = ["Hi!", "Hello!", "Good morning!", "Hey there!"];

/// Something that has one value at a time for a person, and may change. `{}` stands for the value, `@`
/// for the person, `#` for a month.
pub(super) struct Attribute {
    pub(super) values: [&'static str; 10],
    /// Ways of a person to say it of themselves.
    pub(super) said: [&'static str; 2],
    /// Sentences with such a value that say nothing of the speaker's own.
    pub(super) besides: [&'static str; 2],
    /// How a good memory writes it down.
    pub(super) written: &'static str,
    /// Asks for what holds now, for what held in a month, for all that ever held.
    pub(super) now: &'static str,
    pub(super) then: &'static str,
    pub(super) ever: &'static str,
}

pub(super) const ATTRIBUTES: [Attribute; 5] = [
    Attribute {
        values: [
            "Paris", "Rome", "Oslo", "Lima", "Cairo", "Delhi", "Quito", "Tokyo", "Accra", "Berlin",
        ],
        said: ["my city is {}.", "my city is now {}."],
        besides: ["my sister's city is {}.", "I read about the city {}."],
        written: "@'s city is {}.",
        now: "What is @'s city?",
        then: "What was @'s city in #?",
        ever: "What cities has @ had?",
    },
    Attribute {
        values: [
            "baker", "nurse", "pilot", "tailor", "farmer", "lawyer", "singer", "doctor", "waiter",
            "judge",
        ],
        said: ["my job is {}.", "my job is now {}."],
        besides: ["my sister's job is {}.", "I read about the job {}."],
        written: "@'s job is {}.",
        now: "What is @'s job?",
        then: "What was @'s job in #?",
        ever: "What jobs has @ had?",
    },
    Attribute {
        values: [
            "rice", "pizza", "soup", "curry", "bread", "cheese", "pasta", "salad", "beans", "fish",
        ],
        said: ["my food is {}.", "my food is now {}."],
        besides: ["my sister's food is {}.", "I read about the food {}."],
        written: "@'s food is {}.",
        now: "What is @'s food?",
        then: "What was @'s food in #?",
        ever: "What foods has @ had?",
    },
    Attribute {
        values: [
            "cat", "dog", "parrot", "rabbit", "turtle", "hamster", "lizard", "goat", "pony",
            "snake",
        ],
        said: ["my pet is {}.", "my pet is now {}."],
        besides: ["my sister's pet is {}.", "I read about the pet {}."],
        written: "@'s pet is {}.",
        now: "What is @'s pet?",
        then: "What was @'s pet in #?",
        ever: "What pets has @ had?",
    },
    Attribute {
        values: [
            "tennis", "chess", "rugby", "hockey", "golf", "judo", "rowing", "boxing", "skiing",
            "diving",
        ],
        said: ["my sport is {}.", "my sport is now {}."],
        besides: ["my sister's sport is {}.", "I read about the sport {}."],
        written: "@'s sport is {}.",
        now: "What is @'s sport?",
        then: "What was @'s sport in #?",
        ever: "What sports has @ had?",
    },
];
