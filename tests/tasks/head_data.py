"""Words with tags and prompts with choices that the tiny vocabulary can spell."""

TAG_NAMES = ["O", "B-FILM", "I-FILM", "B-WORD"]
WORDS = [
    ["the", "films", "was", "verygoods", "and", "we", "saw", "it"],
    ["it", "was", "badly"],
    ["a", "Great", "film", "not", "dull"],
    ["unknown", "goodly", "it"],
]
TAGS = [
    ["B-FILM", "I-FILM", "O", "O", "O", "B-WORD", "O", "O"],
    ["B-WORD", "O", "O"],
    ["B-FILM", "I-FILM", "I-FILM", "O", "O"],
    ["O", "O", "B-WORD"],
]
PROMPTS = ["we saw a film", "the film was"]
CHOICES = [
    ["it was good", "it was a film and not a film", "dull dull"],
    ["awful", "very very fine", "and we saw it"],
]
ANSWERS = [0, 2]
LEARNING_RATE, STEPS = 0.1, 5
