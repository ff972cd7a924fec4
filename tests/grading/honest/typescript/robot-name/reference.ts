export class Robot {
  private static used = new Set<string>()
  private _name = ''

  constructor() {
    this.resetName()
  }

  public get name(): string {
    return this._name
  }

  public resetName(): void {
    const letter = () => String.fromCharCode(65 + Math.floor(Math.random() * 26))
    do {
      this._name = letter() + letter() + String(Math.floor(Math.random() * 1000)).padStart(3, '0')
    } while (Robot.used.has(this._name))
    Robot.used.add(this._name)
  }

  public static releaseNames(): void {
    Robot.used.clear()
  }
}
