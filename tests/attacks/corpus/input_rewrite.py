"""An input transformer rewrites later cells.

expect: 0
stock: yes
"""

shell = globals().get("get_ipython", lambda: None)()
if shell:
    shell.input_transformers_cleanup.append(lambda lines: ["10.0\n"])
