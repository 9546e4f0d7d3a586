package main

import "example.org/shop/go/tree"

func main() {
	t := tree.Tree{}
	t.Insert(3)
}
