package org.shop;

public interface Item {
    int price();
}
