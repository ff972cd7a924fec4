// Wrong: one name for all.
export class Robot {
  name = 'AB123'
  resetName(): void {}
  static releaseNames(): void {}
}
