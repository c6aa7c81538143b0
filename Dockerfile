# The course with its grader. `docker run --rm IMAGE` says what isolation it has; see
# docs/where_people_work.md.
FROM python:3.12-slim

RUN useradd --create-home --uid 1000 course
WORKDIR /course

# Packages first: they change seldom.
COPY pyproject.toml constraints.txt install.py README.md LICENSE ./
COPY autograder/__init__.py autograder/__init__.py
RUN python install.py --folder /opt/course

COPY . .
RUN mkdir -p build && chown -R course build notebooks

ENV PATH=/opt/course/bin:$PATH \
    AUTOGRADER_COURSE=/course \
    PYTHONPATH=/course \
    PYTHONDONTWRITEBYTECODE=1 \
    OMP_NUM_THREADS=1
USER course
ENTRYPOINT ["autograder"]
CMD ["doctor"]
