declare global {
  interface Array<T> {
    pick(): T
  }
  interface String {
    twice(): string
  }
}
Array.prototype.pick = function () {
  return this[Math.floor(Math.random() * this.length)]
}
String.prototype.twice = function () {
  return `${this}${this}`
}
const letters = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZ']
const digits = [...'0123456789'.twice()]
const names = new Set<string>()
console.log('robots are ready')

export class Robot {
  name = ''
  constructor() {
    this.resetName()
  }
  resetName() {
    const old = names.size
    while (names.size === old) {
      this.name = [letters, letters, digits, digits, digits].map((each) => each.pick()).join('')
      names.add(this.name)
    }
  }
  static releaseNames() {
    names.clear()
  }
}
