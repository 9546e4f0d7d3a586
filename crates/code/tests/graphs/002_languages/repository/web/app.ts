import { Circle } from './shapes'

interface Named { name(): string }

enum Colour { Red, Green }

class Big extends Circle implements Named {
  name(): string { return 'big' }
}

export function total(shapes: Named[]): number {
  return shapes.map((it) => it.area()).length + square(2)
}
