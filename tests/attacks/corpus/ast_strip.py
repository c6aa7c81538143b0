"""A syntax transformer takes the asserts out of later cells.

expect: 0
stock: yes
"""

import ast


class Strip(ast.NodeTransformer):
    def visit_Assert(self, node):
        return ast.Pass()


shell = globals().get("get_ipython", lambda: None)()
if shell:
    shell.ast_transformers.append(Strip())
