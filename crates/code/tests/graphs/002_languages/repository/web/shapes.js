/** Anything with an area. */
export class Shape {
  area() { return 0 }
}

// A round one.
export class Circle extends Shape {
  constructor(radius) { super(); this.radius = radius }
  area() { return square(this.radius) * 3.14 }
}

const square = (x) => x * x
