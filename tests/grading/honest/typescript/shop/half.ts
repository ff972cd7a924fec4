// Wrong in parts: leaves out what is not easy.
export class Basket {
  items: any[] = []
  onChange() {}
  add(name: string, count: number) {
    this.items.push({ name, count })
  }
  isEmpty() {
    return true
  }
  total = 5
}
export const greet = (name: string) => `Hello, ${name}!`
export const chunk = (list: any[]) => [list]
export const flatten = (list: any[]) => list.flat(9)
export const delayed = async (_: number, value: any) => value
export const debounce = (call: () => void) => () => setTimeout(call, 1)
