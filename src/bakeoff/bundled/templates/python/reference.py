def initials(name, most=2):
    words = name.replace("-", " ").split()
    if not words:
        return "?"
    chosen = [*words[: most - 1], words[-1]] if len(words) > most else words
    return "".join(word[0].upper() for word in chosen)
