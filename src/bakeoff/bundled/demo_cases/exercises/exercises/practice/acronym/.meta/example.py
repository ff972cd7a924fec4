def acronym(text):
    return "".join(word[0] for word in text.split()).upper()
