"""Plain modern sentences, made from lists: a few per cent of the text, so that everyday words
(school, bus, kitchen) and the prompt ``Today we can go to`` are not foreign to the models."""

import random

NAMES = "Anna Ben Clara David Ella Emma George Henry Jack James John Kate Leo Lucy Mary Max Mike "
NAMES += "Nina Oliver Oscar Paul Peter Rosa Ruth Sam Sarah Tom Will"
PLACES = [
    *("the park", "the beach", "the lake", "the library", "the market", "the station"),
    *("the river", "the farm", "the village", "the forest", "the museum", "the garden"),
    *("the shop", "the mountains", "the zoo", "town", "school", "bed", "church", "work", "sea"),
    *("my aunt's house", "my grandmother's house", "your house", "our friends", "a farm"),
    *("a little island", "a new school", "a big city", "another place", "one of the shops"),
    *("London", "Paris", "Mr. Brown's shop", "see the boats", "see the horses", "visit her"),
    *("buy some bread", "find the dog", "look for the cat", "play in the snow", "any place"),
]
DAYS = "Today|Tomorrow|This morning|This afternoon|After school|On Sunday|On Monday|Tonight"
WHY = [
    *("it is a fine day", "the sun is shining", "we have no school", "it will not rain"),
    *("there is so much to see", "I have a little money", "mother said yes", "it is not far"),
    *("we have been good", "the work is done", "everybody will be there", "I want to see it"),
]
THINGS = "a book|an apple|a red ball|a letter|a cup of tea|a piece of cake|the key|a flower|"
THINGS += "a drink|a small box|some bread|a picture|a blue coat|two eggs|the map|a warm hat"
ANIMALS = "dog|cat|horse|bird|mouse|cow|rabbit|fish|duck|sheep"
MOODS = "happy|sad|tired|glad|hungry|quiet|afraid|proud|angry|surprised"
DID = [
    *("ran all the way home", "sat down under a tree", "laughed out loud", "read a story"),
    *("made a small boat", "drew a picture of the house", "waited for the bus", "sang a song"),
    *("opened the window", "looked out at the rain", "cooked some soup", "climbed the hill"),
    *("washed the dishes", "counted the stars", "wrote a letter", "fell asleep by the fire"),
]


def story(rng: random.Random) -> str:
    """One story of four to eight sentences about two children."""
    pick = rng.choice
    first, second = rng.sample(NAMES.split(), 2)
    animal, thing, mood = (pick(words.split("|")) for words in (ANIMALS, THINGS, MOODS))
    day, other_day = rng.sample(DAYS.split("|"), 2)
    there, elsewhere = rng.sample(PLACES, 2)
    can = pick(["can", "could", "will", "shall", "may", "must", "want to", "are going to"])
    sentences = [
        f'{day} we {can} go to {there}," said {first}. "I think {pick(WHY)}.'
        if rng.random() < 0.5
        else f"{day} we {can} go to {there}, because {pick(WHY)}.",
        f"{first} and {second} went to {there}, and {first} gave {thing} to {second}.",
        f"{second} was {mood}, because {pick(WHY)}.",
        f"There was a {pick(['little', 'big', 'white', 'black', 'brown'])} {animal} in the road.",
        f"The {animal} looked at {second}, and {second} looked at the {animal}.",
        f'"Where is {thing}?" asked {second}. "I do not know," said {first}.',
        f"{first} {pick(DID)}, and then {first} {pick(DID)}.",
        f"{other_day} they {pick(['went', 'will go', 'can go', 'walked'])} to {elsewhere}.",
        f"{second} {pick(DID)}.",
        f"When {first} came home, {second} {pick(DID)}.",
    ]
    opening, rest = sentences[0], sentences[1:]
    if opening.count('"') == 2:
        opening = f'"{opening}"'
    return " ".join([opening, *rng.sample(rest, rng.randint(3, 7))])


def stories(count: int, seed: int) -> list[str]:
    """``count`` stories; the same ones for the same seed."""
    rng = random.Random(seed)
    return [story(rng) for _ in range(count)]
