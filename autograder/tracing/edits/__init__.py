"""Small changes of a student's program: the one that makes all right says what is wrong."""
