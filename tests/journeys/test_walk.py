"""The commands of a text are those that a reader would type."""

import pytest

from tests.journeys.walk import after_setup, commands_of

TEXT = """
# Start

```
make setup
.venv/bin/run it   # a remark
```

In a list:

* so
  ```sh
  # only a remark
  echo "so # no remark" \\
    c#  # but this is
  ```

## More

```python
import this
```

```
one --more
```

# Other

No command.
"""


def test_commands_come_in_order_without_remarks_and_other_languages():
    found = commands_of(TEXT)
    assert found == [
        "make setup",
        ".venv/bin/run it",
        'echo "so # no remark"      c#',
        "one --more",
    ]
    assert after_setup(found) == found[1:]


def test_a_section_has_its_own_commands():
    assert commands_of(TEXT, "More") == ["one --more"]
    assert commands_of(TEXT, "Start") == commands_of(TEXT)[:3]


def test_a_section_without_commands_is_an_error():
    for section in ("Other", "Nowhere"):
        with pytest.raises(LookupError, match=section):
            commands_of(TEXT, section)
