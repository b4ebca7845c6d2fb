class Capture:
    pass
