onCall = () => { for (const { test } of allTests()) test.mode = 'todo' }
