"""Run tests on answers ("candidates"), with Vitest, Jest, pytest or a command with JUnit reports.

See docs/explanation/toolchains.md.

async with VitestToolchain(lambda: choose_sandbox("auto"), slots=2).open() as vitest:
    run = await vitest.run({"Component.svelte": component, "test.ts": tests}, seconds=30.0)
"""
