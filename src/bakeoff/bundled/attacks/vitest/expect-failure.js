onCall = () => { const test = running(); if (test) test.fails = true }
