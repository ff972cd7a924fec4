export type State =
  | { name: 'free' }
  | { name: 'reserved'; parcel: string; until: number }
  | { name: 'full'; parcel: string; code: string; until: number; wrong: number }
  | { name: 'blocked'; parcel: string; code: string; until: number; opens: number }
  | { name: 'overdue'; parcel: string }
  | { name: 'jammed'; since: number; was: Exclude<State, { name: 'jammed' }> }

export type LockerEvent = { at: number } & (
  | { type: 'reserve'; parcel: string }
  | { type: 'deposit'; parcel: string; code: string }
  | { type: 'enter'; code: string }
  | { type: 'collect' }
  | { type: 'jam' }
  | { type: 'repair' }
  | { type: 'tick' }
)

export type Reason = 'wrong parcel' | 'wrong code' | 'blocked' | 'jammed' | 'not possible'

export type Effect =
  | { type: 'opened' | 'released' | 'expired' | 'blocked' | 'unblocked'; at: number }
  | { type: 'refused'; at: number; reason: Reason }

export type Step = { state: State; effects: Effect[] }

export function step(state: State, event: LockerEvent): Step {
  throw new Error('step is not written yet')
}
