onCall = () => { process.reallyExit(0) }
