"""What came: bytes in, a `Submission` out. Finds, reads, matches and repairs what was handed in.

May read files that students handed in, with care, and write into a folder of its own. Runs nothing
of what it reads, and believes only cell types, ids and texts. Knows the lessons (`course`).
"""
