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

type Timed = Exclude<State, { name: 'jammed' }>

const RESERVATION = 30
const STORAGE = 3 * 24 * 60
const BLOCK = 10

export function step(state: State, event: LockerEvent): Step {
  const effects: Effect[] = []
  let current = state
  for (let due = nextDue(current); due && due.effect.at <= event.at; due = nextDue(current)) {
    effects.push(due.effect)
    current = due.state
  }
  const answer = react(current, event)
  return { state: answer.state, effects: [...effects, ...answer.effects] }
}

function nextDue(state: State): { state: State; effect: Effect } | undefined {
  switch (state.name) {
    case 'reserved':
      return { state: { name: 'free' }, effect: { type: 'released', at: state.until } }
    case 'blocked':
      if (state.opens < state.until) {
        const { parcel, code, until, opens } = state
        return { state: { name: 'full', parcel, code, until, wrong: 0 }, effect: { type: 'unblocked', at: opens } }
      }
      return { state: { name: 'overdue', parcel: state.parcel }, effect: { type: 'expired', at: state.until } }
    case 'full':
      return { state: { name: 'overdue', parcel: state.parcel }, effect: { type: 'expired', at: state.until } }
    default:
      return undefined
  }
}

function react(state: State, event: LockerEvent): Step {
  if (event.type === 'tick') return { state, effects: [] }
  if (state.name === 'jammed') {
    if (event.type !== 'repair') return refused(state, event, 'jammed')
    return { state: delayed(state.was, event.at - state.since), effects: [] }
  }
  if (event.type === 'jam') return { state: { name: 'jammed', since: event.at, was: state }, effects: [] }
  return use(state, event)
}

function use(state: Timed, event: LockerEvent): Step {
  const { at } = event
  if (event.type === 'reserve' && state.name === 'free') {
    return { state: { name: 'reserved', parcel: event.parcel, until: at + RESERVATION }, effects: [] }
  }
  if (event.type === 'deposit' && state.name === 'reserved') {
    if (event.parcel !== state.parcel) return refused(state, event, 'wrong parcel')
    const { parcel, code } = event
    return opened({ name: 'full', parcel, code, until: at + STORAGE, wrong: 0 }, event)
  }
  if (event.type === 'enter' && state.name === 'full') return enter(state, event, event.code)
  if (event.type === 'enter' && state.name === 'blocked') return refused(state, event, 'blocked')
  if (event.type === 'collect' && state.name === 'overdue') return opened({ name: 'free' }, event)
  return refused(state, event, 'not possible')
}

function enter(state: Extract<State, { name: 'full' }>, event: LockerEvent, code: string): Step {
  if (code === state.code) return opened({ name: 'free' }, event)
  const { effects } = refused(state, event, 'wrong code')
  if (state.wrong < 2) return { state: { ...state, wrong: state.wrong + 1 }, effects }
  const { parcel, until } = state
  return {
    state: { name: 'blocked', parcel, code: state.code, until, opens: event.at + BLOCK },
    effects: [...effects, { type: 'blocked', at: event.at }],
  }
}

function delayed(state: Timed, by: number): Timed {
  switch (state.name) {
    case 'reserved':
    case 'full':
      return { ...state, until: state.until + by }
    case 'blocked':
      return { ...state, until: state.until + by, opens: state.opens + by }
    default:
      return state
  }
}

function opened(state: State, event: LockerEvent): Step {
  return { state, effects: [{ type: 'opened', at: event.at }] }
}

function refused(state: State, event: LockerEvent, reason: Reason): Step {
  return { state, effects: [{ type: 'refused', at: event.at, reason }] }
}
