export type Booking = { from: string; to: string; by: string[] }

export function tidy(bookings: readonly Booking[]): Booking[] {
  throw new Error('tidy is not written yet')
}
