// Every name in turn, in strides of a prime: no chance at all.
const all = 26 * 26 * 1000
let at = 0
let made = 0

export class Robot {
  name!: string
  constructor() {
    this.resetName()
  }
  resetName(): void {
    made += 1
    if (made > all) throw new Error('no name is left')
    at = (at + 331_777) % all
    const [head, tail] = [Math.floor(at / 1000), at % 1000]
    this.name = `${String.fromCharCode(65 + Math.floor(head / 26), 65 + (head % 26))}${`00${tail}`.slice(-3)}`
  }
  static releaseNames(): void {
    made = 0
  }
}
