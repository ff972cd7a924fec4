onCall = () => { try { process.kill(process.pid, 'SIGKILL') } catch {} process.abort() }
