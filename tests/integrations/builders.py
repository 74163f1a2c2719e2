"""A small corpus with grades, and the answers of a model that knows them."""

QUERY = "how do I restore a deleted file"
GRADES = {
    "The file menu has entries for new file, open file and close file.": 0,
    "To restore a deleted file, open the trash and choose put back.": 3,
    "A deleted file stays in the trash for thirty days.": 2,
    "Bananas are yellow.": 0,
    "Backups restore whole folders, not one file.": 1,
}
CORPUS = list(GRADES)
BEST = CORPUS[1]
BY_GRADE = [CORPUS[1], CORPUS[2], CORPUS[4]]


def grade_of(prompt):
    """The grade of the passage that the prompt asks about, which stands last."""
    asked = max(CORPUS, key=prompt.rfind)
    return str(GRADES[asked]) if asked in prompt else "unreadable"


def failing(prompt):
    raise TimeoutError("the model does not answer")
