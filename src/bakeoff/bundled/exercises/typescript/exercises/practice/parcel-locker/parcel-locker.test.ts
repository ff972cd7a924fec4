import { describe, expect, it, xit } from '@jest/globals'
import { step } from './parcel-locker.ts'
import type { Effect, LockerEvent, State } from './parcel-locker.ts'

const FREE: State = { name: 'free' }
const DAYS = 24 * 60

function play(...events: LockerEvent[]): { state: State; effects: Effect[] } {
  let state = FREE
  const effects: Effect[] = []
  for (const event of events) {
    const frozen = JSON.stringify(state)
    const answer = step(state, event)
    expect(JSON.stringify(state)).toBe(frozen)
    effects.push(...answer.effects)
    state = JSON.parse(JSON.stringify(answer.state))
  }
  return { state, effects }
}

const reserve = (at: number, parcel = 'P1'): LockerEvent => ({ type: 'reserve', at, parcel })
const deposit = (at: number, parcel = 'P1'): LockerEvent => ({ type: 'deposit', at, parcel, code: '4711' })
const enter = (at: number, code: string): LockerEvent => ({ type: 'enter', at, code })
const plain = (type: 'collect' | 'jam' | 'repair' | 'tick', at: number): LockerEvent => ({ type, at })
const refused = (at: number, reason: string): Effect => ({ type: 'refused', at, reason }) as Effect

describe('parcel locker', () => {
  it('takes a parcel in, and hands it out', () => {
    expect(play(reserve(0), deposit(10)).state).toEqual({
      name: 'full',
      parcel: 'P1',
      code: '4711',
      until: 10 + 3 * DAYS,
      wrong: 0,
    })
    expect(play(reserve(0), deposit(10), enter(500, '4711'))).toEqual({
      state: FREE,
      effects: [
        { type: 'opened', at: 10 },
        { type: 'opened', at: 500 },
      ],
    })
  })

  xit('releases a reservation after half an hour, to the minute', () => {
    expect(play(reserve(5), plain('tick', 34)).state).toEqual({ name: 'reserved', parcel: 'P1', until: 35 })
    expect(play(reserve(5), deposit(35))).toEqual({
      state: FREE,
      effects: [{ type: 'released', at: 35 }, refused(35, 'not possible')],
    })
    expect(play(reserve(5), reserve(50, 'P2'))).toEqual({
      state: { name: 'reserved', parcel: 'P2', until: 80 },
      effects: [{ type: 'released', at: 35 }],
    })
  })

  xit('refuses the wrong parcel, and keeps the reservation', () => {
    expect(play(reserve(0), deposit(3, 'P2'))).toEqual({
      state: { name: 'reserved', parcel: 'P1', until: 30 },
      effects: [refused(3, 'wrong parcel')],
    })
  })

  xit('is blocked after three wrong codes, and then forgets them', () => {
    const tried = [reserve(0), deposit(0), enter(10, '1'), enter(11, '2'), enter(12, '3')]
    expect(play(...tried)).toEqual({
      state: { name: 'blocked', parcel: 'P1', code: '4711', until: 3 * DAYS, opens: 22 },
      effects: [
        { type: 'opened', at: 0 },
        refused(10, 'wrong code'),
        refused(11, 'wrong code'),
        refused(12, 'wrong code'),
        { type: 'blocked', at: 12 },
      ],
    })
    expect(play(...tried, enter(21, '4711')).effects.at(-1)).toEqual(refused(21, 'blocked'))
    expect(play(...tried, enter(22, '4711')).effects.slice(-2)).toEqual([
      { type: 'unblocked', at: 22 },
      { type: 'opened', at: 22 },
    ])
    expect(play(...tried, enter(30, '9')).state).toMatchObject({ name: 'full', wrong: 1, until: 3 * DAYS })
  })

  xit('expires after three days, and is emptied by the courier', () => {
    expect(play(reserve(0), deposit(7), enter(7 + 3 * DAYS, '4711'))).toEqual({
      state: { name: 'overdue', parcel: 'P1' },
      effects: [{ type: 'opened', at: 7 }, { type: 'expired', at: 7 + 3 * DAYS }, refused(7 + 3 * DAYS, 'not possible')],
    })
    expect(play(reserve(0), deposit(7), plain('collect', 9999)).state).toEqual(FREE)
    expect(play(reserve(0), deposit(7), plain('collect', 100)).effects.at(-1)).toEqual(refused(100, 'not possible'))
  })

  xit('lets things happen in order of time', () => {
    const end = 3 * DAYS
    const late = [enter(end - 20, '1'), enter(end - 19, '2'), enter(end - 18, '3')]
    expect(play(reserve(0), deposit(0), ...late, plain('tick', end + 50)).effects.slice(-3)).toEqual([
      { type: 'blocked', at: end - 18 },
      { type: 'unblocked', at: end - 8 },
      { type: 'expired', at: end },
    ])
  })

  xit('expires while it is blocked, even if it would open at that moment or later', () => {
    for (const minutes of [0, 4]) {
      const end = 3 * DAYS
      const last = end - 10 + minutes
      const late = [enter(last, '1'), enter(last, '2'), enter(last, '3')]
      expect(play(reserve(0), deposit(0), ...late, plain('tick', end + 50))).toMatchObject({
        state: { name: 'overdue', parcel: 'P1' },
        effects: [...Array(4).fill({}), { type: 'blocked', at: last }, { type: 'expired', at: end }],
      })
    }
  })

  xit('stands still while it is jammed', () => {
    expect(play(reserve(0), plain('jam', 10), plain('tick', 100)).state).toEqual({
      name: 'jammed',
      since: 10,
      was: { name: 'reserved', parcel: 'P1', until: 30 },
    })
    expect(play(reserve(0), plain('jam', 10), deposit(20), plain('jam', 25), plain('repair', 100))).toEqual({
      state: { name: 'reserved', parcel: 'P1', until: 120 },
      effects: [refused(20, 'jammed'), refused(25, 'jammed')],
    })
  })

  xit('moves both times of a blocked compartment when it is repaired', () => {
    const tried = [reserve(0), deposit(0), enter(1, '1'), enter(2, '2'), enter(3, '3')]
    expect(play(...tried, plain('jam', 5), plain('repair', 50)).state).toEqual({
      name: 'blocked',
      parcel: 'P1',
      code: '4711',
      until: 3 * DAYS + 45,
      opens: 58,
    })
    expect(play(...tried, plain('jam', 13), plain('repair', 50)).state).toMatchObject({ name: 'full', wrong: 0 })
  })

  xit('lets what is due at the moment of a jam happen first', () => {
    expect(play(reserve(0), plain('jam', 30))).toEqual({
      state: { name: 'jammed', since: 30, was: FREE },
      effects: [{ type: 'released', at: 30 }],
    })
  })

  xit('refuses what makes no sense', () => {
    expect(play(deposit(1), enter(2, '4711'), plain('collect', 3), plain('repair', 4))).toEqual({
      state: FREE,
      effects: [1, 2, 3, 4].map((at) => refused(at, 'not possible')),
    })
    expect(play(reserve(0), reserve(1, 'P2')).effects).toEqual([refused(1, 'not possible')])
  })
})
