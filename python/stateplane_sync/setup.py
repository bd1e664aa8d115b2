"""Generates the gRPC stubs from the engine's definitions when the wheel is built."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

PROTOCOL = Path(__file__).resolve().parents[2] / "crates/edge/view/proto"

# Definitions, of which none names another.
NAMES = ["view", "flows"]


class BuildWithStubs(build_py):
    """Puts the modules of the definitions into the package that is built."""

    def run(self):
        super().run()
        import grpc_tools
        from grpc_tools import protoc

        target = Path(self.build_lib) / "stateplane_sync/_generated"
        target.mkdir(parents=True, exist_ok=True)
        (target / "__init__.py").write_text("")
        common = Path(grpc_tools.__file__).parent / "_proto"
        for name in NAMES:
            source = PROTOCOL / f"stateplane/sync/v1/{name}.proto"
            # Without its folders, so that the stubs import each other within the package.
            flat = target / f"{name}.proto"
            flat.write_text(source.read_text())
            code = protoc.main(
                [
                    "protoc",
                    f"-I{target}",
                    f"-I{common}",
                    f"--python_out={target}",
                    f"--grpc_python_out={target}",
                    str(flat),
                ]
            )
            flat.unlink()
            if code != 0:
                raise SystemExit(f"protoc fails on {source}")
            stub = target / f"{name}_pb2_grpc.py"
            text = stub.read_text()
            text = text.replace(f"import {name}_pb2 as", f"from . import {name}_pb2 as")
            stub.write_text(text)


setup(cmdclass={"build_py": BuildWithStubs})
