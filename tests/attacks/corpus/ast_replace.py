"""A syntax transformer turns every later cell into a number.

expect: 0
stock: yes
"""

import ast


class Number(ast.NodeTransformer):
    def visit_Module(self, node):
        return ast.parse("5.0")


shell = globals().get("get_ipython", lambda: None)()
if shell:
    shell.ast_transformers.append(Number())
