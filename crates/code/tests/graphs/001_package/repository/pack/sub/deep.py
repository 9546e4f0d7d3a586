import pack.shapes as forms
import pack.sub
from pack import Box


class Cube(forms.Square):
    def area(self):
        return forms.circle(1)

    def volume(self):
        def inner():
            return self.area()
        return inner()


def use(box: "Box"):
    box.double
    pack.sub.make(3)
    return [Box(n).area() for n in range(3)]


async def later(thing):
    made = await forms.make(2)
    thing.volume()
    return made.area()
