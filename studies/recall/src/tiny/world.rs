//! The words of the small world: people, months, and what can be true of a person.

/// Who talks.
pub(super) const PEOPLE: [&str; 10] = [
    "Ann", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo", "Ida", "Jon",
];

/// When sessions take place: at most one a month, in order.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
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
        said: ["I live in {}.", "I moved to {}."],
        besides: ["my sister lives in {}.", "I may move to {} one day."],
        written: "@ lives in the city {}.",
        now: "Which city does @ live in?",
        then: "In #, which city did @ live in?",
        ever: "Which cities has @ lived in?",
    },
    Attribute {
        values: [
            "baker", "nurse", "pilot", "tailor", "farmer", "lawyer", "singer", "doctor", "waiter",
            "judge",
        ],
        said: ["I work as a {}.", "my new job is {}."],
        besides: ["my brother works as a {}.", "I may become a {} one day."],
        written: "@ has the job {}.",
        now: "Which job does @ have?",
        then: "In #, which job did @ have?",
        ever: "Which jobs has @ had?",
    },
    Attribute {
        values: [
            "rice", "pizza", "soup", "curry", "bread", "cheese", "pasta", "salad", "beans", "fish",
        ],
        said: ["I like {} best.", "I eat {} every day."],
        besides: ["my sister likes {}.", "I may try {} one day."],
        written: "@ likes the food {} best.",
        now: "Which food does @ like best?",
        then: "In #, which food did @ like best?",
        ever: "Which foods has @ liked best?",
    },
    Attribute {
        values: [
            "cat", "dog", "parrot", "rabbit", "turtle", "hamster", "lizard", "goat", "pony",
            "snake",
        ],
        said: ["I have a {}.", "I took in a {}."],
        besides: ["my brother has a {}.", "I may get a {} one day."],
        written: "@ has the pet {}.",
        now: "Which pet does @ have?",
        then: "In #, which pet did @ have?",
        ever: "Which pets has @ had?",
    },
    Attribute {
        values: [
            "tennis", "chess", "rugby", "hockey", "golf", "judo", "rowing", "boxing", "skiing",
            "diving",
        ],
        said: ["I play {}.", "I took up {}."],
        besides: ["my sister plays {}.", "I may learn {} one day."],
        written: "@ plays the sport {}.",
        now: "Which sport does @ play?",
        then: "In #, which sport did @ play?",
        ever: "Which sports has @ played?",
    },
];
