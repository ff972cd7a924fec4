"""Run tests on candidates: warm Vitest and Jest, Vitest in Chromium, pytest, and any command that writes JUnit XML.

See docs/explanation/toolchains.md.

async with VitestToolchain(lambda: choose_sandbox("auto"), slots=2).open() as vitest:
    run = await vitest.run({"Component.svelte": component, "test.ts": tests}, seconds=30.0)
"""
