def acronym(text):
    pass
